-- Reads the texts of slides, one code block each, separately into divisions. The class of a block
-- is the name of its reader. A formula becomes a code element of the class `mathml`.

local folder = pandoc.path.directory(PANDOC_SCRIPT_FILE)
local raw = dofile(pandoc.path.join({ folder, "raw.lua" }))

local function mathml(math)
  local document = pandoc.Pandoc({ pandoc.Plain({ math }) })
  local html = pandoc.write(document, "html", { html_math_method = "mathml" })
  return pandoc.Code(html, pandoc.Attr("", { "mathml", math.mathtype }))
end

function Pandoc(document)
  local texts = document.blocks:map(function(block)
    -- Without a line break at the end, the reader loses the last row of a table.
    local blocks = pandoc.read(block.text .. "\n", block.classes[1]).blocks
    blocks = blocks:walk({ Inlines = raw.Inlines })
    blocks = blocks:walk({ RawInline = raw.RawInline, RawBlock = raw.RawBlock })
    return pandoc.Div(blocks:walk({ Math = mathml }))
  end)
  return pandoc.Pandoc(texts)
end
