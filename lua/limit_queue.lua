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
  return 1
end
local period = string.match(ARGV[1], '^[1-9]%d* ([1-9]%d*)$')
if not period then return redis.error_reply('ERR limit_queue: not <count> <period ms>: ' .. ARGV[1]) end
-- Another count does not undo what was claimed in this window; another period has other windows.
local before = redis.call('HGET', KEYS[1], 'limit')
if not before or string.match(before, ' (%d+)$') ~= period then redis.call('DEL', KEYS[2]) end
redis.call('HSET', KEYS[1], 'limit', ARGV[1])
return 1
