-- promote(scheduled, lists, now, count, max_bytes, newest_first): move due tasks to the right end of the list
-- their crash digit names (lists[1] pending, lists[2] recovered, lists[3] suspects); returns how many.
-- What is pushed last is next. A claim moves the longest waiting and takes them at once; whoever moves all that
-- is due, chunk by chunk, begins with the newest, so that the longest waiting ends up in front.
local function promote(scheduled, lists, now, count, max_bytes, newest_first)
  local due, bytes, step = {}, 0, 1
  local from, to = '-inf', string.format('%.0f', now)
  while #due < count and bytes < max_bytes do
    local found
    if newest_first then
      found = redis.call('ZRANGE', scheduled, to, from, 'BYSCORE', 'REV', 'LIMIT', 0, math.min(step, count - #due))
    else
      found = redis.call('ZRANGE', scheduled, from, to, 'BYSCORE', 'LIMIT', 0, math.min(step, count - #due))
    end
    if #found == 0 then break end
    redis.call('ZREM', scheduled, unpack(found))
    for _, entry in ipairs(found) do
      due[#due + 1] = entry
      bytes = bytes + #entry
    end
    -- Sized by what was seen, so that a chunk of large tasks stays a small chunk; and only a few at a time, because
    -- what is seen next may be larger: 100 of 1 MiB behind a small one took 0.9 s.
    step = math.max(1, math.min(8, math.floor((max_bytes - bytes) * #due / bytes)))
  end
  for i = 1, #due do
    local entry = newest_first and due[i] or due[#due + 1 - i]
    local digit = string.sub(entry, 1, 1)
    if digit == '0' then
      redis.call('RPUSH', lists[1], string.sub(entry, 2))
    elseif digit == '1' then
      redis.call('RPUSH', lists[2], entry)
    else
      redis.call('RPUSH', lists[3], entry)
    end
  end
  return #due
end
