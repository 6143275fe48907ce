#!lua flags=allow-oom
-- Pause a queue, or let it go on. Runs see it at their next claim.
-- KEYS  1 paused
-- ARGV  1 reason ('' = go on)  2 for how many ms (0 = until told otherwise)
-- returns 1 | 0: it was not paused
--@include types
local bad = wrong_type(KEYS[1], 'string')
if bad then return bad end
if ARGV[1] == '' then return redis.call('DEL', KEYS[1]) end
if tonumber(ARGV[2]) > 0 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[1])
end
return 1
