// Nothing of its own: the unit that a set of precompiled headers (Precompiled.cmake) belongs to.
