"""The verdict on a claim at its creation, and the selectors that policies write into it: ResourceClaims and
ResourceClaimTemplates, apart from the pods that will use them. How a claim is read, and nothing of pods."""
