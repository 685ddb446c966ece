"""The screen "Policies": what each one means, what stands against it, and what all of them make of one namespace."""
