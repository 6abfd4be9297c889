"""``python -m popcore`` is the command ``popcore``."""

from popcore.cli import main

main(prog_name="popcore")
