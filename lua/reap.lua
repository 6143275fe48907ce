#!lua flags=allow-oom
-- Move one chunk of what an expired run left behind one step on; the first call marks the run, so that its own
-- renew and claim are refused from then on. Nothing is decided here and no task is read.
-- KEYS  1 runs  2 runs:info  3 recovered  4 suspects  5 dead  6 totals  7 history
--       8, 9, 10 processing 0, 1, 2 of the expired run
-- ARGV  1 the expired run  2 tasks at most  3 bytes at most  4 reaper's run  5 lease ms granted to a run without entry
-- returns {status, moved to recovered, to suspects, to dead}
--   status  live (its lease is good) | noted (it had no entry and got one) | more (call again) | done (entry removed)
--@include clock
--@include types
--@include rights
local run, max_count, max_bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms()

local bad = wrong_type(KEYS[1], 'zset') or wrong_type(KEYS[3], 'list') or wrong_type(KEYS[4], 'list')
  or wrong_type(KEYS[5], 'stream') or wrong_type(KEYS[7], 'stream') or wrong_type(KEYS[8], 'list')
  or wrong_type(KEYS[9], 'list') or wrong_type(KEYS[10], 'list')
  or no_right('LPUSH', KEYS[3], '') or no_right('XADD', KEYS[5], '*', '', '') or no_right('ZREM', KEYS[1], '')
if bad then return bad end

local score = tonumber(redis.call('ZSCORE', KEYS[1], run) or nil)
if not score then
  if redis.call('EXISTS', KEYS[8], KEYS[9], KEYS[10]) == 0 then
    redis.call('HDEL', KEYS[2], run)
    return {'done', 0, 0, 0}
  end
  -- Whoever holds this may be at work: it is reaped like any other, one lease from now.
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[5])), run)
  return {'noted', 0, 0, 0}
end
if score > now then return {'live', 0, 0, 0} end
if score > 0 then redis.call('ZADD', KEYS[1], string.format('%.0f', -score), run) end

local count, bytes = 0, 0
local moved = {recovered = 0, suspects = 0, dead = 0}
local function take(list, place)
  while count < max_count and bytes < max_bytes do
    local entry = redis.call('RPOP', list)
    if not entry then return end
    count, bytes = count + 1, bytes + #entry
    place(entry)
  end
end

-- Suspects first: they are to be found before what was merely near a crash.
local function step_on(entry)
  local digit, task = string.match(entry, '^(%d)(.*)$')
  if not digit then digit, task = 1, entry end -- a stranger put it there: not a byte of it is lost
  digit = digit + 1
  if digit >= 4 then
    redis.call('XADD', KEYS[5], '*', 'task', task, 'reason', 'crashed',
      'error', digit .. ' runs died while holding this task', 'run', run, 'at', string.format('%.0f', now))
    moved.dead = moved.dead + 1
  else
    redis.call('LPUSH', KEYS[4], digit .. task)
    moved.suspects = moved.suspects + 1
  end
end
take(KEYS[10], step_on)
take(KEYS[9], step_on)
take(KEYS[8], function(task)
  redis.call('LPUSH', KEYS[3], '1' .. task)
  moved.recovered = moved.recovered + 1
end)

for action, times in pairs(moved) do
  if times > 0 then redis.pcall('HINCRBY', KEYS[6], 'reaped:' .. action, times) end
end
if redis.call('EXISTS', KEYS[8], KEYS[9], KEYS[10]) > 0 then
  return {'more', moved.recovered, moved.suspects, moved.dead}
end
local info = redis.pcall('HGET', KEYS[2], run)
redis.call('ZREM', KEYS[1], run)
redis.pcall('HDEL', KEYS[2], run)
redis.pcall('HINCRBY', KEYS[6], 'runs:crashed', 1)
redis.call('XADD', KEYS[7], 'MAXLEN', '=', 1000, '*', 'run', run, 'result', 'crashed', 'stop_reason', 'crashed',
  'exit_code', '', 'ended_ms', string.format('%.0f', now), 'count', 1, 'info', type(info) == 'string' and info or '',
  'reaped_by', ARGV[4])
return {'done', moved.recovered, moved.suspects, moved.dead}
