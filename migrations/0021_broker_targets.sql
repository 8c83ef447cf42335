-- Subscriptions whose target is a message broker.
--
-- `url` is shown, so it never holds a login. `sealed_login` is the login that a broker's URL held, sealed under the master key and bound to
-- the subscription; NULL where it held none. The claim reads it as it reads the secrets.

ALTER TABLE statesvc.subscription ADD COLUMN sealed_login bytea;
