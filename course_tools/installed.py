"""Compare this interpreter with constraints.txt: python -m course_tools.installed [--extra E] [--root DIR].

bootstrap.py runs this to find out whether an environment can be used as it is. Standard library only.
"""

import argparse
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def normal(name):
    """A package's name as constraints.txt spells it: Jupyter_Core -> jupyter-core."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins():
    """constraints.txt as {name: version}."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def direct(extras):
    """The names of the packages that pyproject.toml itself requires, with these extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = sum((project["optional-dependencies"][extra] for extra in extras), project["dependencies"])
    return {normal(re.match(r"[\w.-]+", requirement).group()) for requirement in asked}


def version(name):
    """The installed version, or None; 2.13.0+cpu counts as 2.13.0."""
    try:
        return metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError:
        return None


def differences(extras=()):
    """One line for each package that is missing, or whose version differs from constraints.txt."""
    wanted = direct(extras)
    installed = {name: version(name) for name in pins()}
    return [f"{name}: {installed[name] or 'missing'}, but the course needs {pin}"
            for name, pin in pins().items()
            if installed[name] != pin and (installed[name] or name in wanted)]


def main(argv=None):
    """The exit status: 0 if usable as it is, 4 if usable once pip has installed what differs."""
    parser = argparse.ArgumentParser(prog="python -m course_tools.installed",
                                     description=__doc__.split(":")[0])
    parser.add_argument("--extra", action="append", default=[], choices=["test", "cluster", "site"])
    parser.add_argument("--root", type=Path, default=ROOT)
    args = parser.parse_args(argv)
    if args.root.resolve() != ROOT:
        print(f"the course is installed from {ROOT}, not from {args.root}")
        return 4
    found = differences(args.extra)
    print("\n".join(found), end="\n" if found else "")
    return 4 if found else 0


if __name__ == "__main__":
    sys.exit(main())
