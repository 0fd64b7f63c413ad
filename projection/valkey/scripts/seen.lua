-- Reads the pages of windows of presence.
-- KEYS: each window's set of pages. Answers page number and bitmap by turns; a page comes once for each window that has it.
local out = {}
for _, window in ipairs(KEYS) do
	for _, page in ipairs(redis.call('SMEMBERS', window)) do
		local bitmap = redis.call('GET', window .. ':' .. page)
		if bitmap then
			out[#out + 1] = page
			out[#out + 1] = bitmap
		end
	end
end
return out
