"""JupyterLab for this course, read through JUPYTER_CONFIG_PATH (course_tools/lab.py)."""

from pathlib import Path

c = get_config()  # noqa: F821
c.ContentsManager.pre_save_hook = "course_tools.saving.settle"
c.LabApp.custom_css = True
c.ServerApp.tornado_settings = {"static_custom_path": [str(Path(__file__).parent / "custom")]}
