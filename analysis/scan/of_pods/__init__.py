"""Families of findings on single pods that ask for devices, a file each."""
