"""Amounts and names that policies give, merged, whatever pod they are for (``policies.planning.merged_settings`` holds
the rest). Nothing here places a pod."""
