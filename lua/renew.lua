#!lua flags=allow-oom
-- Extend a run's lease, unless it has been taken away.
-- KEYS  1 runs
-- ARGV  1 run  2 lease ms
-- returns 1 | 0: lost (no entry, or being reaped)
--@include clock
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) <= 0 then return 0 end
redis.call('ZADD', KEYS[1], string.format('%.0f', now_ms() + tonumber(ARGV[2])), ARGV[1])
return 1
