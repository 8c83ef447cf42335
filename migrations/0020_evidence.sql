-- migrate: no-transaction
-- Evidence about a shipment names what operators did to it: their actions by what they were done to.

CREATE INDEX CONCURRENTLY IF NOT EXISTS action_target ON statesvc.action (target);
