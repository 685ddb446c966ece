"""The part of a world (``analysis.world``) that one person may see."""
