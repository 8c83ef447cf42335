"""`GET /v1/stream`: transitions as Server-Sent Events, from the sealed log.

```
checkpoint --wake-up--> Tail (one reader a process) --> Window (newest transitions, encoded once) --> Follower --> Channel --> client
                                                        the log itself, page by page, for who is behind --^
```
The log is the buffer: a client is nothing but its next index, so none is lost or repeated however often it comes back, and one that
reads slowly costs nobody else anything.
"""
