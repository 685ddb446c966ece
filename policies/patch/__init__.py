"""The patch that Berth writes: the operations for edits, the record of them in an annotation, and what an update gets back."""
