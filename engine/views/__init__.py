"""The views in a process of their own, beside the one that holds the log.

Folding takes as much of a core as deciding does, and one interpreter runs on one core. ``following`` is the child: it
reads the log's file up to where it is told, and folds. ``remote`` is the parent's end: it says where the log ends,
learns how far the child has come, and reads the tables.

They talk in lines through the child's standard streams: numbers of the log downwards; upwards the numbers up to which
the tables know it, the first one as soon as there are tables, ``corrupted REASON`` where the log can't be read, and
``unwritable REASON`` each time that the tables can't be written: the disk may be full. The child ends when its input
does, so it never outlives its parent.
"""
