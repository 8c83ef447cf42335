"""Limiter of each subscription: never faster than its receiver. Pure: time is an argument.

`concurrency` finds how many requests the receiver bears at a time, `circuit_breaker` stops asking a
receiver that is down, `retry_budget` keeps retries a small share of the traffic;
`subscription_limiter` combines the three, `permits` all of them under the process's bound. Times
are seconds of the database's clock; they may step back a little between attempts, without harm.
"""
