#!lua
-- Put one dead letter back into the queue, behind what waits there. Refused when Redis is full.
-- KEYS  1 dead  2 pending  3 totals
-- ARGV  1 entry id in the stream  2 the task with its counters reset
-- returns 1 | 0: no such dead letter (any more), nothing changed
--@include types
--@include rights
local bad = wrong_type(KEYS[1], 'stream') or wrong_type(KEYS[2], 'list') or no_right('LPUSH', KEYS[2], '')
if bad then return bad end
if redis.call('XDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('LPUSH', KEYS[2], ARGV[2])
redis.pcall('HINCRBY', KEYS[3], 'redriven', 1)
return 1
