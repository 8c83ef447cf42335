-- name: is_due
-- Whether there is anything to do: a change of rules that is not applied to all, a shipment or an awaited number that is due. The cutoffs are
-- subqueries, so that the indexes can be used.
SELECT EXISTS (SELECT FROM statesvc.expectation_rules x WHERE x.rearm_recorded_at IS NOT NULL)
    OR EXISTS (SELECT FROM statesvc.shipment s WHERE s.due_at <= (SELECT statesvc.clock()))
    OR EXISTS (SELECT FROM statesvc.awaited_number w WHERE w.due_at <= (SELECT statesvc.clock()));
