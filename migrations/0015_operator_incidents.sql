-- Incidents of the service that were sent to subscriptions (`operator.*`) and are not over. The key lets none begin twice.
CREATE TABLE statesvc.operator_incident (
    type text NOT NULL,
    target text NOT NULL,
    since timestamptz NOT NULL,
    incident_id uuid NOT NULL,
    subscriptions uuid[] NOT NULL,
    PRIMARY KEY (type, target)
);
SELECT statesvc.sample_little('statesvc.operator_incident');

-- The words are in `projections/notification_type.py`; all that 0.1.0 writes still fits.
-- squawk-ignore ban-drop-constraint
ALTER TABLE statesvc.notification DROP CONSTRAINT notification_type_check;
ALTER TABLE statesvc.notification ADD CONSTRAINT notification_type_form CHECK (type ~ '^(shipment|operator)\.[a-z_]+$') NOT VALID;
