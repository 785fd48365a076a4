@echo off
rem From RNNs to the Transformer, on Windows: a double click on this file sets up the course (once, a few
rem minutes) and opens it in JupyterLab.
cd /d "%~dp0"
where py >nul 2>nul
if errorlevel 1 (python course_tools\bootstrap.py lab %*) else (py -3 course_tools\bootstrap.py lab %*)
if errorlevel 1 pause
