#!lua flags=allow-oom
-- Move one suspect to a run that holds nothing else, so that only it can be blamed for what happens next.
-- KEYS  1 runs  2 paused  3 config  4 limit  5 suspects  6 totals  7, 8, 9 processing 0, 1, 2 of the run
-- ARGV  1 run
-- returns {status, now ms, length of own list 0, 1, 2, window, at ms, 0, task?}, as claim does
--   status  ok | paused | limited | lost | busy (the run holds something: nothing is claimed)
--@include clock
--@include types
--@include queue_limit
local run = ARGV[1]
local now = now_ms()
local own = {redis.call('LLEN', KEYS[7]), redis.call('LLEN', KEYS[8]), redis.call('LLEN', KEYS[9])}

local function answer(status, window, at)
  return {status, now, own[1], own[2], own[3], window, at, 0}
end

local lease = redis.call('ZSCORE', KEYS[1], run)
if not lease or tonumber(lease) < now then return answer('lost', -1, 0) end
if redis.call('EXISTS', KEYS[2]) == 1 then return answer('paused', -1, 0) end
if own[1] + own[2] + own[3] > 0 then return answer('busy', -1, 0) end
local bad = wrong_type(KEYS[5], 'list') or wrong_type(KEYS[9], 'list') or wrong_type(KEYS[4], 'hash')
if bad then return bad end

local permits, window, ends = queue_permits(KEYS[3], KEYS[4], now)
if permits == 0 then return answer('limited', window, ends) end

local task = redis.call('LMOVE', KEYS[5], KEYS[9], 'RIGHT', 'LEFT')
if not task then return answer('ok', window, 0) end
own[3] = 1
redis.pcall('HINCRBY', KEYS[6], 'claimed', 1)
if permits then take_permits(KEYS[4], window, ends, now, 1) end
local reply = answer('ok', window, 0)
reply[9] = task
return reply
