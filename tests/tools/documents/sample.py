# ruff: noqa: RUF001
"""One demanding document, deck and sheet, which every maker must do well by."""

import io

from PIL import Image, ImageDraw

MARKDOWN = r"""# 2026 年第三季度市场报告 — Q3 Market Report

**Summary.** Revenue grew by *12.4 %* against Q2；华东地区（上海、杭州）贡献最大。See the
[full data](https://example.com/data?a=1&b=2) and note that a < b && c > d. It costs $12 or $15.

## 1. 销售数据 Sales figures

| 地区 Region | Q2 (万元) | Q3 (万元) | 增长 Growth |
|:-----------|---------:|---------:|:----------:|
| 华东 East  |    1,200 |    1,350 |   +12.5 %  |
| 华南 South |      980 |    1,010 |    +3.1 %  |
| **合计**   |    2,180 |    2,360 |  **+8.3 %** |

## 2. 图表 Chart

{{image_1}}

### 2.1 Nested list 嵌套列表

1. First step 第一步
   - detail A，细节
   - detail B with `inline code`
     - deeper still
2. Second step 第二步

- [x] done 完成
- [ ] open 未完成

> 引用：质量第一。A quotation with “curly” quotes and an emoji 🚀.

```python
def f(x: int) -> str:   # 注释
    return f"{x:>10} <b>&amp;"
```

Euler: $e^{i\pi}+1=0$, a root \(\sqrt{a+b}\) and

$$\int_0^1 x^2\,dx = \frac13$$

日本語テスト・カタカナ と 한국어 시험 — Ünïcödé.
H<sub>2</sub>O and x<sup>2</sup>.<br>A new line.

---

![A tall picture](inputs/tall.png)

Last line 最后一行。
"""

BULLETS = [f"- point {n} 要点内容 with words and words and words" for n in range(1, 31)]

SLIDES: list[dict[str, str | list[str]]] = [
    {
        "title": "第一页 Overview",
        "content": "要点一：收入增长 12.4%\n要点二：Cost **down**, *quality* up, `code`\n"
        "- first\n  - nested 嵌套\n- second\n1. one\n2. two\n"
        "Euler: $e^{i\\pi}+1=0$, $\\int_0^1 x^2\\,dx = \\frac13$, $\\sqrt{a+b}$\n"
        "日本語テスト・カタカナ と 한국어 시험",
    },
    {"title": "Wide 宽图", "content": "看图 {{image_1}} 说明文字 below the picture\nSecond line"},
    {"title": "Tall 高图", "content": ["- beside the picture", "- 图片旁边", "{{image_2}}"]},
    {"title": "Both, no words", "content": "{{image_1}}{{image_2}}"},
    {"title": "Thirty points 三十点", "content": BULLETS},
    {
        "title": "Table 表格",
        "content": "Sales 销售:\n\n| 地区 | Q2 | Q3 |\n|:--|--:|--:|\n| 华东 East | 1,200 | 1,350 |"
        "\n| **合计** | 2,180 | 2,360 |\n\nAfter the table.",
    },
    {
        "title": "A long paragraph and a title that is itself much longer than a line of a slide "
        "can hold 很长的标题",
        "content": "很长的文字 long text with <b>&amp; marks. " * 60,
    },
    {
        "title": "Code",
        "content": "```python\ndef f(x):\n    return x < 3 and '<b>'\n```\n> quoted 引用",
    },
]

SHEETS = {
    "销售 Sales": [
        ["地区 Region", "Q2", "Q3", "增长 Growth"],
        ["华东 East", 1200, 1350, "=C2/B2-1"],
        ["华南 South", 980, 1010, "=C3/B3-1"],
        ["合计 Total", "=SUM(B2:B3)", "=SUM(C2:C3)", "=C4/B4-1"],
    ],
    "Notes": [
        {"key": "007", "note": "日本語テスト 한국어 — a long note that needs a wide column " * 3},
        {"key": "x", "note": None, "done": True},
    ],
}

PAGE = """```html
<h1>市场报告 Q3 Market Report</h1>
<p>日本語テスト 한국어 시험 — <b>bold</b>, a &lt; b, 🚀</p>
<table border=1><tr><th>地区</th><th style="text-align:right">Q3</th></tr>
<tr><td>华东 East</td><td style="text-align:right">1,350</td></tr></table>
<ul><li>one<ul><li>nested 嵌套</li></ul></li><li>two</li></ul>
<pre><code>return f"{x:&gt;10} &lt;b&gt;"</code></pre>
<p id="script">no script</p>
<script>document.getElementById("script").textContent = "script ran: " + (6 * 7)</script>
<img src="inputs/wide.png" alt="wide" style="max-width: 100%">
<img src="inputs/tall.png" alt="tall" style="max-height: 300px">
```"""


def wide_picture() -> bytes:
    """Three thousand pixels by two hundred."""
    return _picture(3000, 200, "#1f77b4")


def tall_picture() -> bytes:
    """Two hundred pixels by three thousand."""
    return _picture(200, 3000, "#ff7f0e")


def _picture(width: int, height: int, color: str) -> bytes:
    """A frame and a cross, so that a cut edge is seen."""
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    pen.rectangle((5, 5, width - 6, height - 6), outline=color, width=12)
    pen.line((0, 0, width, height), fill=color, width=8)
    pen.line((0, height, width, 0), fill=color, width=8)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()
