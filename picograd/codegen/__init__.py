"""The codegen room: how one kernel is written, as tiles, a program and text."""
