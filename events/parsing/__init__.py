"""Reading what carriers print: bodies, lists, text, times and places. Pure; knows no carrier."""
