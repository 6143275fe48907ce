#!lua flags=allow-oom
-- Set, change or remove the queue-wide limit; it holds for every claim from now on.
-- KEYS  1 config  2 limit
-- ARGV  1 '<count> <period ms>' ('' = no limit)
-- returns 1
--@include types
local bad = wrong_type(KEYS[1], 'hash') or wrong_type(KEYS[2], 'hash')
if bad then return bad end
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'limit')
  redis.call('DEL', KEYS[2])
elseif redis.call('HGET', KEYS[1], 'limit') ~= ARGV[1] then
  redis.call('HSET', KEYS[1], 'limit', ARGV[1])
  redis.call('DEL', KEYS[2])
end
return 1
