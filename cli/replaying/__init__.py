"""The replay of recordings: their entries become creations of pods with what was decided of them, which are judged anew
by every core, and counted."""
