#!lua flags=allow-oom
-- End a run that holds nothing any more, and write its line into the history.
-- KEYS  1 runs  2 runs:info  3 history  4 totals  5, 6, 7 processing 0, 1, 2 of the run
-- ARGV  1 run  2 result (success | interrupted | error)  3 stop reason  4 exit code  5 started ms  6 duration µs
--       7 summary (JSON)  8 '1' = it did nothing: folded into an idle entry that came just before
-- returns {'closed', 0, 0, 0} | {'held', length of own list 0, 1, 2}: nothing changed | {'gone', 0, 0, 0}: reaped
--@include clock
--@include types
local run, result, idle = ARGV[1], ARGV[2], ARGV[8] == '1'
local held = {redis.call('LLEN', KEYS[5]), redis.call('LLEN', KEYS[6]), redis.call('LLEN', KEYS[7])}
if held[1] + held[2] + held[3] > 0 then return {'held', held[1], held[2], held[3]} end
local bad = wrong_type(KEYS[1], 'zset') or wrong_type(KEYS[3], 'stream')
if bad then return bad end

if redis.call('ZREM', KEYS[1], run) == 0 then return {'gone', 0, 0, 0} end
redis.pcall('HDEL', KEYS[2], run)

local now = now_ms()
local stamp = string.format('%.0f', now)
local started, count = ARGV[5], 1
if idle then
  local last = redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)[1]
  if last then
    local fields = {}
    for i = 1, #last[2], 2 do fields[last[2][i]] = last[2][i + 1] end
    if fields.idle == '1' and fields.stop_reason == ARGV[3] then
      redis.call('XDEL', KEYS[3], last[1])
      started, count = fields.started_ms, tonumber(fields.count) + 1
    end
  end
end
redis.call('XADD', KEYS[3], 'MAXLEN', '=', 1000, '*', 'run', run, 'result', result, 'stop_reason', ARGV[3],
  'exit_code', ARGV[4], 'started_ms', started, 'ended_ms', stamp, 'duration_us', ARGV[6], 'count', count,
  'idle', ARGV[8], 'summary', ARGV[7])

redis.pcall('HINCRBY', KEYS[4], 'runs:' .. result, 1)
redis.pcall('HSET', KEYS[4], 'last_run_ms', stamp, 'last_run_duration_us', ARGV[6])
if result == 'success' then redis.pcall('HSET', KEYS[4], 'last_success_ms', stamp) end
return {'closed', 0, 0, 0}
