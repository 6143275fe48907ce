#!lua flags=allow-oom
-- Move tasks from the queue to a run's own lists: what is due is promoted first, recovered goes before pending.
-- KEYS  1 runs  2 paused  3 config  4 limit  5 scheduled  6 pending  7 recovered  8 suspects  9 totals
--       10, 11 processing 0, 1 of the run  12 processing 2
-- ARGV  1 run  2 how many at most  3 bytes at most (at least one task is moved)
-- returns {status, now ms, length of own list 0, 1, 2, window, at ms, moved from recovered, task…}
--   status  ok | paused | limited | lost (no live lease: nothing is claimed) | busy (the run holds a suspect: likewise)
--   window  of the queue-wide limit the tasks were taken from, -1 = none
--   at      limited: when permits are free again; nothing moved: when the next scheduled task is due, 0 = never
--   task    as stored, the recovered first; each group in the order it is to be run
--@include clock
--@include types
--@include rights
--@include promote
--@include queue_limit
local run, want, max_bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now = now_ms()

local function answer(status, window, at, recovered, tasks)
  local reply = {status, now, redis.call('LLEN', KEYS[10]), redis.call('LLEN', KEYS[11]), redis.call('LLEN', KEYS[12]),
    window, at, recovered}
  for i = 1, #tasks do reply[8 + i] = tasks[i] end
  return reply
end

local lease = redis.call('ZSCORE', KEYS[1], run)
if not lease or tonumber(lease) < now then return answer('lost', -1, 0, 0, {}) end
if redis.call('EXISTS', KEYS[2]) == 1 then return answer('paused', -1, 0, 0, {}) end
-- A late command of the run's own must not put a suspect into company either.
if redis.call('LLEN', KEYS[12]) > 0 then return answer('busy', -1, 0, 0, {}) end
local bad = wrong_type(KEYS[6], 'list') or wrong_type(KEYS[7], 'list') or wrong_type(KEYS[8], 'list')
  or wrong_type(KEYS[10], 'list') or wrong_type(KEYS[11], 'list') or wrong_type(KEYS[12], 'list')
  or wrong_type(KEYS[5], 'zset') or wrong_type(KEYS[4], 'hash') or no_right('RPUSH', KEYS[6], '')
if bad then return bad end

local permits, window, ends = queue_permits(KEYS[3], KEYS[4], now)
if permits then want = math.min(want, permits) end
if permits == 0 then return answer('limited', window, ends, 0, {}) end

-- No more than is taken now: what is promoted later goes in front of what was left lying.
promote(KEYS[5], {KEYS[6], KEYS[7], KEYS[8]}, now, want - redis.call('LLEN', KEYS[7]), max_bytes, false)

local tasks, bytes, recovered = {}, 0, 0
local function move(source, target)
  while #tasks < want and bytes < max_bytes do
    local task = redis.call('LMOVE', source, target, 'RIGHT', 'LEFT')
    if not task then return end
    tasks[#tasks + 1] = task
    bytes = bytes + #task
  end
end
move(KEYS[7], KEYS[11])
recovered = #tasks
move(KEYS[6], KEYS[10])

local at = 0
if #tasks > 0 then
  redis.pcall('HINCRBY', KEYS[9], 'claimed', #tasks)
  if permits then take_permits(KEYS[4], window, ends, now, #tasks) end
elseif want > 0 then
  local next_due = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
  at = tonumber(next_due[2] or 0)
end
return answer('ok', window, at, recovered, tasks)
