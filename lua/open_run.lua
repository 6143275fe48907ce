#!lua flags=allow-oom
-- Register a run's lease before its first claim. Repeating it is harmless.
-- KEYS  1 runs  2 runs:info  3 config  4… every other key of the queue, to have its type checked
-- ARGV  1 run  2 lease ms  3 info (JSON)  4 schema this run knows  5 cap on runs at once (0 = none)
--       6… type of KEYS[4…]
-- returns {'ok', now ms} | {'overlap', runs alive} | {'schema', found}; an error reply WRONGTYPE for a foreign key
--@include clock
--@include types
--@include rights
local run, lease, cap = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[5])

local bad = wrong_type(KEYS[1], 'zset') or wrong_type(KEYS[2], 'hash') or wrong_type(KEYS[3], 'hash')
for i = 4, #KEYS do
  bad = bad or wrong_type(KEYS[i], ARGV[i + 2])
end
-- Whatever is refused only later is refused to a run that has begun its tasks already.
for _, command in ipairs({'LMOVE', 'LREM', 'RPOP', 'LPUSH', 'RPUSH', 'ZREM', 'XADD', 'DEL', 'HINCRBY'}) do
  bad = bad or no_right(command, KEYS[1], KEYS[1], KEYS[1], KEYS[1])
end
if bad then return bad end

local schema = redis.call('HGET', KEYS[3], 'schema')
if schema and tonumber(schema) ~= nil and tonumber(schema) > tonumber(ARGV[4]) then return {'schema', schema} end

local now = now_ms()
local score = redis.call('ZSCORE', KEYS[1], run)
if cap > 0 and not score then
  local alive = redis.call('ZCOUNT', KEYS[1], string.format('%.0f', now), '+inf')
  if alive >= cap then return {'overlap', alive} end
end
if not score or tonumber(score) > 0 then
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + lease), run)
  redis.call('HSET', KEYS[2], run, ARGV[3])
end
redis.call('HSETNX', KEYS[3], 'schema', ARGV[4])
return {'ok', now}
