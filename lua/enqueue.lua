#!lua
-- Accept one task: now or later, and only once while its deduplication key is held. Refused when Redis is full.
-- KEYS  1 pending  2 scheduled  3 deduplication key (optional)
-- ARGV  1 task  2 delay ms (0 = now)  3 id  4 ttl ms of the deduplication key
-- returns {1, id} | {0, id that holds the key, or id if its twin, byte for byte, is scheduled}: nothing changed
--@include clock
--@include types
--@include rights
local bad = wrong_type(KEYS[1], 'list') or wrong_type(KEYS[2], 'zset') or (KEYS[3] and wrong_type(KEYS[3], 'string'))
  or no_right('ZADD', KEYS[2], 0, '') or no_right('LPUSH', KEYS[1], '')
if bad then return bad end
local later = tonumber(ARGV[2]) > 0
local holder = KEYS[3] and redis.call('GET', KEYS[3])
if holder then return {0, holder} end
-- Members of a sorted set differ: the two would become one, and the promise for one of them would be broken.
if later and redis.call('ZSCORE', KEYS[2], '0' .. ARGV[1]) then return {0, ARGV[3]} end
if KEYS[3] then redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[4]) end
if later then
  redis.call('ZADD', KEYS[2], string.format('%.0f', now_ms() + tonumber(ARGV[2])), '0' .. ARGV[1])
else
  redis.call('LPUSH', KEYS[1], ARGV[1])
end
return {1, ARGV[3]}
