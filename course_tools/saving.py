"""How JupyterLab saves a notebook: a hook for course_tools/jupyter/jupyter_server_config.py.

A lesson that is opened and saved without being run stays the same file, byte for byte.
"""

# What JupyterLab writes, except for language_info's "version", which depends on the reader's Python.
KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"codemirror_mode": {"name": "ipython", "version": 3}, "file_extension": ".py",
                      "mimetype": "text/x-python", "name": "python", "nbconvert_exporter": "python",
                      "pygments_lexer": "ipython3"},
}
LIVE = "application/vnd.jupyter.widget-view+json"


def settle(model, **_others):
    """Bring a notebook, in place, into the form in which it is saved: our metadata, and no live widgets.

    model: what Jupyter's contents API is about to write.  A live widget refers to the running kernel and
    shows an error once that kernel is gone.  Its static picture or text is kept.
    """
    if model.get("type") != "notebook" or not model.get("content"):
        return
    notebook = model["content"]
    if notebook["metadata"].get("kernelspec", {}).get("name") == KERNEL["kernelspec"]["name"]:
        notebook["metadata"].update(KERNEL)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if len(output.get("data", {})) > 1:
                output["data"].pop(LIVE, None)
