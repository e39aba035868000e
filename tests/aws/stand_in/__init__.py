"""The parts of the stand-in that launcher.py starts."""
