"""Where the project is: the one place that says so. ``.ci/address.py OWNER/NAME`` writes another into all files that
repeat it, and ``.ci/address.py --check`` says whether they agree."""

REPOSITORY = "your-org/syncscope"
"""On GitHub; a placeholder until it is published."""

HOME = f"https://github.com/{REPOSITORY}"
RULES = f"{HOME}#rules"
