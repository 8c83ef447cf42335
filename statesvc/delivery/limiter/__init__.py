"""Limiter of each subscription: never faster than its receiver can take it. Pure: time is an argument, nothing waits.

`concurrency` finds how many requests the receiver bears at a time, `circuit_breaker` stops asking one that is down, `retry_budget` keeps
retries a small share of the traffic; `subscription_limiter` is the three for one subscription, `permits` all of them under the process's
bound. Times are seconds of the database's clock; they may step back a little between attempts, and nothing here minds.
"""
