"""Pages for people, which show what was read and change nothing: what policies would do, who may land where, why a pod waits. A
page is a pure function of a ``View`` and a query; rooms below have the pages of one screen each, what is read, and who may see it."""
