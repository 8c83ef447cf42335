-- Subscriptions may say how old a change may be.

-- What had happened longer ago than this when we recorded it is not sent. NULL: everything is.
ALTER TABLE statesvc.subscription ADD COLUMN max_age_seconds double precision;
