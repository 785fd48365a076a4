"""Shapes with names: an error that says which axis disagrees."""


def check_shapes(spec, *tensors):
    """Compare tensors with named axes; return the sizes, ``{"B": 2, "n": 3, ...}``.

    spec: one group for each tensor, separated by commas: ``"B n d_k, B m d_k"``.  A name stands for
    the same size wherever it occurs, a number for itself, and ``...`` at the front for any axes.

    Raises ValueError, which names the axis, both sizes and the tensor in which each was found.

    >>> import torch
    >>> check_shapes("B n d_k, B m d_k", torch.zeros(2, 3, 4), torch.zeros(2, 5, 4))
    {'B': 2, 'n': 3, 'd_k': 4, 'm': 5}
    """
    groups = [group.split() for group in spec.split(",")]
    if len(groups) != len(tensors):
        raise ValueError(f"'{spec}' describes {len(groups)} tensors, but {len(tensors)} were given")
    sizes, first = {}, {}
    for number, (axes, tensor) in enumerate(zip(groups, tensors, strict=True), start=1):
        shape = tuple(tensor.shape)
        seen = f"tensor {number} of shape {shape}"
        axes, shape = _match_ends(axes, shape, seen)
        for axis, size in zip(axes, shape, strict=True):
            want = int(axis) if axis.isdigit() else sizes.setdefault(axis, size)
            first.setdefault(axis, seen)
            if size != want:
                where = "" if axis.isdigit() else f", but {want} in {first[axis]}"
                raise ValueError(f"axis {axis} is {size} in {seen}{where or f', expected {want}'}")
    return sizes


def _match_ends(axes, shape, seen):
    """Drop the axes that ``...`` stands for; complain where the number of axes differs."""
    if axes[:1] == ["..."]:
        axes, given = axes[1:], shape
        shape = shape[len(shape) - len(axes):] if len(shape) >= len(axes) else shape
        if len(given) >= len(axes):
            return axes, shape
    if len(axes) != len(shape):
        raise ValueError(f"{seen} has {len(shape)} axes, expected {len(axes)}: ({', '.join(axes)})")
    return axes, shape
