"""The requirements and defaults of the policies for one pod: its devices, requirements, merged settings, queue and
defaults, intersected with the offers.

Nothing here writes edits or denies a pod: ``policies.rules`` do.
"""
