-- name: is_due
-- Return whether there is anything to do: a change of rules that is not applied to all, a shipment or an awaited number that is due. The earliest
-- due times are read, each from the end of its index: of a comparison the planner expects a third of the rows, and reads the table instead.
SELECT EXISTS (SELECT FROM statesvc.expectation_rules x WHERE x.rearm_recorded_at IS NOT NULL)
    OR coalesce(
        least((SELECT min(s.due_at) FROM statesvc.shipment s), (SELECT min(w.due_at) FROM statesvc.awaited_number w)) <= statesvc.clock(), false);
