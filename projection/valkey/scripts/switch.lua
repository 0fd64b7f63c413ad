-- Puts pages that were written beforehand, under an incarnation that nobody reads yet, in the place of whatever there is.
-- KEYS: head. ARGV: "apply" or "reset", epoch, after, last, incarnation, summary, last ticket, last handle, channel, then the new pages.
-- Answers {"ok", the pages of the incarnation before…}, or why not.
local head = redis.call('HMGET', KEYS[1], 'incarnation', 'epoch', 'seq', 't', 'q')
if head[1] and tonumber(ARGV[2]) < tonumber(head[2]) then return {'stale'} end
if ARGV[1] == 'apply' then
	if not head[1] then return {'gap'} end
	local seq = tonumber(head[3])
	if tonumber(ARGV[3]) > seq then return {'gap'} end
	if tonumber(ARGV[4]) <= seq then return {'seen'} end
end

local room = string.sub(KEYS[1], 1, -5)
-- Pages of an unfinished rewrite expire. If one already has, nothing may be switched.
for i = 10, #ARGV do
	if redis.call('EXISTS', room .. ARGV[5] .. ':' .. ARGV[i]) == 0 then
		return redis.error_reply('page ' .. ARGV[i] .. ' of incarnation ' .. ARGV[5] .. ' has expired')
	end
end
redis.call('HSET', KEYS[1], 'incarnation', ARGV[5], 'epoch', ARGV[2], 'seq', ARGV[4], 'summary', ARGV[6], 't', ARGV[7], 'q', ARGV[8])
for i = 10, #ARGV do
	redis.call('PERSIST', room .. ARGV[5] .. ':' .. ARGV[i])
end
redis.call('SPUBLISH', ARGV[9], ARGV[4])

local old = {'ok'}
if head[1] then
	local base = room .. head[1] .. ':'
	-- They are unlinked by whoever called; should it die first, they go by themselves.
	local function forget(key)
		if redis.call('EXPIRE', base .. key, 60) == 1 then old[#old + 1] = head[1] .. ':' .. key end
	end
	for p = 0, math.floor(tonumber(head[4]) / 4096) do
		forget('s:' .. p) forget('t:' .. p) forget('l:' .. p) forget('w:' .. p)
	end
	for p = 0, math.floor(tonumber(head[5]) / 4096) do
		forget('q:' .. p) forget('e:' .. p)
	end
	forget('c')
end
return old
