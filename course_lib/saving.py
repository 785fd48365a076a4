"""What JupyterLab writes into a notebook's file: a hook of course_lib/jupyter/jupyter_server_config.py.

A lesson that was opened and saved, without being run, is the same file as before.
"""

# What JupyterLab writes, but for language_info's "version": that is the reader's Python.
KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"codemirror_mode": {"name": "ipython", "version": 3}, "file_extension": ".py",
                      "mimetype": "text/x-python", "name": "python", "nbconvert_exporter": "python",
                      "pygments_lexer": "ipython3"},
}
LIVE = "application/vnd.jupyter.widget-view+json"


def settle(model, **_others):
    """The form in which a notebook is saved, in place: the course's metadata, and no live widgets.

    model: what Jupyter's contents API is about to write.  A live widget is a reference into the running
    kernel, which shows an error once that kernel is gone; its static picture or text is kept.
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
