"""The parts of tools/torture.py: kills, damage, full disks and bad input for all commands."""
