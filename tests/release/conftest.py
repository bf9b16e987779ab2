"""What is here runs in an environment of its own, by `.ci/wheel`."""

collect_ignore = ["base_use.py"]
