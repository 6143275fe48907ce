#!lua flags=allow-oom
-- Delete one dead letter for good.
-- KEYS  1 dead  2 totals
-- ARGV  1 entry id in the stream
-- returns 1 | 0: no such dead letter
--@include types
local bad = wrong_type(KEYS[1], 'stream')
if bad then return bad end
local deleted = redis.call('XDEL', KEYS[1], ARGV[1])
if deleted > 0 then redis.pcall('HINCRBY', KEYS[2], 'deleted', deleted) end
return deleted
