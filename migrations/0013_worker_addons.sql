-- Add-ons that are on in each process, so that doctor finds where STATESVC_ADDONS differs; NULL of 0.1.0, which has no such setting.
ALTER TABLE statesvc.worker ADD COLUMN addons text[];
SELECT statesvc.sample_little('statesvc.worker');
