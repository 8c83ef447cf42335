"""One notification out: what is sent, where to, how it is signed, what came back, and how fast its receiver may be notified."""
