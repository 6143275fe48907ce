#!lua flags=allow-oom
-- Move one chunk of due scheduled tasks to the lists their crash digits name.
-- KEYS  1 scheduled  2 pending  3 recovered  4 suspects
-- ARGV  1 tasks at most  2 bytes at most
-- returns how many were moved; fewer than asked for does not mean none are left (0 does)
--@include clock
--@include types
--@include rights
--@include promote
local bad = wrong_type(KEYS[1], 'zset') or wrong_type(KEYS[2], 'list') or wrong_type(KEYS[3], 'list')
  or wrong_type(KEYS[4], 'list') or no_right('RPUSH', KEYS[2], '')
if bad then return bad end
return promote(KEYS[1], {KEYS[2], KEYS[3], KEYS[4]}, now_ms(), tonumber(ARGV[1]), tonumber(ARGV[2]), true)
