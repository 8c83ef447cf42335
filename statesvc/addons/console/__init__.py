"""The operators' pages: server-rendered, behind a session of an API key. A page asks the calls of the API, in this process, as its key."""
